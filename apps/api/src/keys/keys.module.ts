import { ApiKey } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module';
import { KeysController } from './keys.controller';
import { KeysService } from './keys.service';

/** API keys over HTTP. */
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey]), AuthModule],
  controllers: [KeysController],
  providers: [KeysService],
})
export class KeysModule {}
