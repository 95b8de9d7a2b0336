import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@app/config';
import { UnprocessableError } from '@app/domain';
import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '../config.token';

/** Names that the bundled model may stand in for. */
const standInFor: ReadonlySet<string> = new Set(['sd1.5', 'sd2.1']);

/** Which models this installation draws with. */
@Injectable()
export class ModelsService {
  constructor(@Inject(CONFIG) private readonly config: Config) {}

  /** @throws UnprocessableError `ModelNotInstalled` when neither the model nor a permitted stand-in is there. */
  async assertServed(name: string): Promise<void> {
    if (await this.isInstalled(name)) return;
    if (this.config.modelFallback && standInFor.has(name)) return;
    const message = `is not installed`;
    throw new UnprocessableError('ModelNotInstalled', `The model "${name}" ${message}; GET /v1/models lists those that are.`, [
      { pointer: '/model', message },
    ]);
  }

  private isInstalled(name: string): Promise<boolean> {
    return access(join(this.config.modelsDir, name, 'model_index.json')).then(
      () => true,
      () => false,
    );
  }
}
