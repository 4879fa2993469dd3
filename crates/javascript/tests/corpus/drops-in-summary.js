import { sleep } from 'k6';

export const options = {
  scenarios: {
    busy: { executor: 'constant-arrival-rate', rate: 10, timeUnit: '1s', duration: '1s', preAllocatedVUs: 1, maxVUs: 1, gracefulStop: '5s' },
  },
  thresholds: { dropped_iterations: ['count>5', 'count<7'], vus_max: ['value<=1'] },
};

export default function () {
  sleep(3);
}

export function handleSummary(data) {
  const { values, thresholds, type } = data.metrics.dropped_iterations;
  return {
    stdout: `${type} ${values.count} ${values.rate > 0} ${JSON.stringify(thresholds)} ${JSON.stringify(data.metrics.vus_max.thresholds)}`,
  };
}
