import { Module } from '@nestjs/common';
import { AgentsController } from './agents.controller';
import { AgentsService } from './agents.service';

/** What agents may do here. */
@Module({ controllers: [AgentsController], providers: [AgentsService] })
export class AgentsModule {}
