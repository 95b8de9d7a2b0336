export { openQueueConnection } from './queue-connection';
export { QueueModule } from './queue.module';
export { afterCommit, Transactions } from './transactions';
export { WakeUps } from './wake-ups';
