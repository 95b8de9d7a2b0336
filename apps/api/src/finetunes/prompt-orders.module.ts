import { Module } from '@nestjs/common';
import { AcceptanceModule } from '../generations/acceptance.module';
import { ModelsModule } from '../models/models.module';
import { PromptOrders } from './prompt-orders.service';

/** Prompts as requests ask for them. */
@Module({ imports: [AcceptanceModule, ModelsModule], providers: [PromptOrders], exports: [PromptOrders] })
export class PromptOrdersModule {}
