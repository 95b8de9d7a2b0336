export { Generator } from './generator';
