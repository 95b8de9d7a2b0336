export { JsonLogger } from './json-logger';
