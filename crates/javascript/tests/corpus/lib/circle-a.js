import { nameOfB } from './circle-b.js';
export const nameOfA = 'a';
export const both = () => `${nameOfA}${nameOfB()}`;
export default class Base { constructor(id) { this.id = id; } path() { return `/${this.kind()}/${this.id}`; } kind() { return 'base'; } }
