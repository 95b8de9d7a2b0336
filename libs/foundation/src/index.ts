export { ConfigModule } from './config.module';
export { DatabaseModule } from './database.module';
export { ImageTasksModule } from './image-tasks.module';
export { QueueConsumer } from './queue-consumer';
export type { QueueSentences } from './queue-consumer';
export { QueueModule } from './queue.module';
export { RecurringService } from './recurring.service';
export { StorageModule } from './storage.module';
export { CONFIG, IMAGE_STORAGE, JOB_BACK_END, SHUTDOWN_DEADLINE_MS } from './tokens';
