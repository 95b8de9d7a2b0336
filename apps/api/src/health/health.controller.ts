import { Controller, Get } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { DataSource } from 'typeorm';
import { Public } from '../auth/api-key.guard';
import { ServiceUnavailableError } from '../http/http-errors';

/** Whether the process lives, and whether it can serve. */
@ApiExcludeController()
@Public()
@Controller('health')
export class HealthController {
  constructor(private readonly dataSource: DataSource) {}

  @Get('live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  @Get('ready')
  async ready(): Promise<{ status: 'ok' }> {
    await this.dataSource.query('SELECT 1').catch(() => {
      throw new ServiceUnavailableError('The service cannot reach its database.');
    });
    return { status: 'ok' };
  }
}
