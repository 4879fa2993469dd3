import http from 'k6/http';
import { group } from 'k6';

const flows = [
  { weight: 3, name: 'browse', run: () => http.get('BASE/browse') },
  { weight: 1, name: 'buy', run: () => http.post('BASE/buy', JSON.stringify({ item: 1 })) },
];
const total = flows.reduce((sum, f) => sum + f.weight, 0);

function* turns() {
  let i = 0;
  while (true) {
    let at = i++ % total;
    for (const flow of flows) {
      if (at < flow.weight) {
        yield flow;
        break;
      }
      at -= flow.weight;
    }
  }
}

const turn = turns();
export const options = { vus: 1, iterations: 8 };

export default function () {
  const { value: flow } = turn.next();
  switch (flow.name) {
    case 'browse':
    case 'buy':
      group(flow.name, flow.run);
      break;
    default:
      throw new Error('unreachable');
  }
}
