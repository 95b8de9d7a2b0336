import { ApiProperty } from '@nestjs/swagger';
import type { InferenceWorker } from './inference-worker';

/** A model in the memory of a device. */
export class LoadedModelDto {
  @ApiProperty({
    type: String,
    description: '`<model>@<hash>`, followed by `+<kind>:<hash>` of the weights of a Fine-Tune.',
    example: 'shapes@0123456789ab',
  })
  name: string;

  @ApiProperty({ type: 'integer', description: 'Estimated memory.' })
  bytes: number;
}

/** A device of a worker, and what it is at. */
export class WorkerDeviceDto {
  @ApiProperty({ type: String, description: 'cpu, webgpu or cuda:<n>.', example: 'cuda:0' })
  name: string;

  @ApiProperty({ type: 'integer', description: 'Generations and Prompts that it draws side by side.', example: 3 })
  tasks: number;

  @ApiProperty({
    type: 'integer',
    description: 'The batch: how many pictures its last step moved on together; 0 while it draws nothing.',
    example: 4,
  })
  batch: number;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Milliseconds of this step; null while it draws nothing.',
    example: 180,
  })
  step_ms: number | null;

  @ApiProperty({ type: LoadedModelDto, isArray: true, description: 'What it has loaded.' })
  loaded: LoadedModelDto[];

  @ApiProperty({ type: 'integer', description: 'Estimated memory of all loaded models.' })
  memory_bytes: number;

  @ApiProperty({ type: 'integer', description: 'Memory that models and drawing may take.', example: 8_000_000_000 })
  memory_limit_bytes: number;
}

/** A running worker. */
export class WorkerDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: WorkerDeviceDto, isArray: true, description: 'One of an older version says nothing of them.' })
  devices: WorkerDeviceDto[];

  @ApiProperty({
    type: String,
    isArray: true,
    description: 'Names of the models that it can draw now, with those that its stand-in draws for.',
    example: ['shapes', 'sd1.5'],
  })
  models: string[];

  @ApiProperty({ type: String, format: 'date-time' })
  started_at: string;

  @ApiProperty({ type: String, format: 'date-time', description: 'When it last said that it is there.' })
  heartbeat_at: string;

  static from({ id, engines, models, startedAt, heartbeatAt }: InferenceWorker): WorkerDto {
    return {
      id,
      devices: (engines ?? []).map(({ device, tasks, pictures, stepMs, loaded, memoryBytes }) => ({
        name: device,
        tasks,
        batch: pictures,
        step_ms: stepMs,
        loaded,
        memory_bytes: loaded.reduce((sum, { bytes }) => sum + bytes, 0),
        memory_limit_bytes: memoryBytes,
      })),
      models: models ?? [],
      started_at: startedAt.toISOString(),
      heartbeat_at: heartbeatAt.toISOString(),
    };
  }
}
