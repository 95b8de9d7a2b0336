import { Module } from '@nestjs/common';
import { AgentsController } from './agents.controller';

/** What agents may do here. */
@Module({ controllers: [AgentsController] })
export class AgentsModule {}
