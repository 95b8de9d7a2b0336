import type { UsageDto, UsageGroup, UsageQueryDto } from '@app/domain/http';
import { DailyUsage } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';

const groups: Readonly<Record<UsageGroup, { column: string; order: 'ASC' | 'DESC' }>> = {
  day: { column: `to_char(usage.day, 'YYYY-MM-DD')`, order: 'DESC' },
  model: { column: 'usage.model', order: 'ASC' },
  finetune: { column: `nullif(usage.finetune_id, '')`, order: 'ASC' },
};

/** The usage of a caller. */
@Injectable()
export class UsageService {
  constructor(@InjectRepository(DailyUsage) private readonly usage: Repository<DailyUsage>) {}

  /** One sum per day, model or Fine-Tune that has any. */
  async findAll(ownerId: string, { days, group_by: groupBy }: UsageQueryDto): Promise<UsageDto[]> {
    const { column, order } = groups[groupBy];
    const rows: { key: string | null; images: string; steps: string; seconds: number }[] = await this.usage
      .createQueryBuilder('usage')
      .select(column, 'key')
      .addSelect('sum(usage.images)', 'images')
      .addSelect('sum(usage.steps)', 'steps')
      .addSelect('sum(usage.compute_seconds)', 'seconds')
      .where('usage.owner_id = :ownerId AND usage.day BETWEEN :first AND :last', { ownerId, ...days })
      .groupBy('1')
      .orderBy('1', order, 'NULLS LAST')
      .getRawMany();
    return rows.map(({ key, images, steps, seconds }) => ({
      [groupBy]: key,
      images: Number(images),
      steps: Number(steps),
      // Rounded to milliseconds: more digits are noise of the addition.
      compute_seconds: Math.round(seconds * 1000) / 1000,
    }));
  }
}
