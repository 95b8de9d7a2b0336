export { createDataSource, dataSourceOptions } from './data-source';
export { migrate } from './migrate';
