import Base, { nameOfA } from './circle-a.js';
export const nameOfB = () => `b${nameOfA}`;
export const make = () => class Item extends Base { kind() { return 'item'; } };
