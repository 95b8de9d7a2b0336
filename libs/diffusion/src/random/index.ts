export { Generator } from './generator';
export { BrownianInterval } from './brownian-interval';
