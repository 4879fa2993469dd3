import { get } from 'k6/http';

export const teardown = () => {
  get(`${__ENV.BASE}/bye`);
};
