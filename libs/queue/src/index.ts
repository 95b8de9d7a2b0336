export { openQueueConnection } from './queue-connection';
export { QueueModule } from './queue.module';
export { afterCommit, Transactions } from './transactions';
export { openWakeUps, WakeUps } from './wake-ups';
