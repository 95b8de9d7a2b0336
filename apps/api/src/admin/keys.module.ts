import { ApiKey } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../http/auth.module';
import { UsageModule } from './usage.module';
import { CurrentKeyController } from './current-key.controller';
import { KeyUsageController } from './key-usage.controller';
import { KeysController } from './keys.controller';
import { KeysService } from './keys.service';

/** API keys over HTTP. */
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey]), AuthModule, UsageModule],
  controllers: [CurrentKeyController, KeysController, KeyUsageController],
  providers: [KeysService],
})
export class KeysModule {}
