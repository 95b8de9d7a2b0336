import { type Config, CONFIG } from '@app/config';
import { CredentialsError, endOfCertificate, PictureSigner } from '@app/credentials';
import type { DrawingTask } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { EncodedPicture, PictureParameters } from './image-encoder';
import { claimsOf, type GivenPicture } from './picture-claims';

/** How long it is taken for granted that pictures can be signed, or cannot. A remote signer may cost money. */
const [goodMs, badMs] = [60_000, 5_000];
const dayMs = 86_400_000;
/** The log warns of the end of a certificate when it is as near as this, once a day. */
const soonMs = 30 * dayMs;

interface Asked {
  /** When it is asked anew. */
  until: number;
  problem: Promise<string | undefined>;
}

/**
 * Content Credentials of pictures, where the operator has set them up. While nothing can be signed, no drawing is
 * begun, or pictures are stored without and the log names each, as the operator wants.
 */
@Injectable()
export class PictureCredentials implements OnApplicationShutdown {
  private readonly signer?: PictureSigner;
  private asked?: Asked | undefined;
  /** Why nothing can be signed, as far as is known. */
  private known: string | undefined;
  private warnedAt = -Infinity;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'credentials'>,
    @Inject(JsonLogger) private readonly logger: Pick<JsonLogger, 'log' | 'warn'>,
  ) {
    if (config.credentials) this.signer = new PictureSigner(config.credentials);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.signer?.close();
  }

  /** As a worker tells it of itself; null where pictures get none. */
  get state(): { problem: string | null } | null {
    return this.signer ? { problem: this.known ?? null } : null;
  }

  /** @throws CredentialsError that says why nothing can be signed; where pictures get no credentials, nothing is wrong */
  async check(): Promise<void> {
    const problem = await this.problem();
    if (problem !== undefined) throw new CredentialsError(problem);
  }

  /** Whether what is drawn now can be stored as the operator wants it. */
  async mayDraw(): Promise<boolean> {
    // It is asked in any case: a worker tells of itself whether it signs.
    const problem = this.problem();
    return !this.config.credentials?.isRequired || (await problem) === undefined;
  }

  /** When the certificate in use ends; undefined where there is none, or it cannot be read. */
  async end(): Promise<Date | undefined> {
    const { credentials } = this.config;
    return credentials && endOfCertificate(credentials.certificate).catch(() => undefined);
  }

  /** @throws CredentialsError where pictures have to wait */
  async sign(
    { id, ownerId }: Pick<DrawingTask, 'id' | 'ownerId'>,
    index: number,
    picture: EncodedPicture,
    { parameters, given }: { parameters: PictureParameters; given: readonly GivenPicture[] },
  ): Promise<EncodedPicture> {
    const { credentials } = this.config;
    if (!credentials) return picture;
    const claims = claimsOf({ id, index, parameters, given }, credentials.prompt);
    const file = { bytes: Buffer.concat(picture.parts), type: picture.contentType };
    try {
      const { bytes, note, leftOut = [] } = await this.signer!.sign(ownerId, { ...file, ...claims });
      if (note !== undefined)
        this.logger.warn('a picture is signed without a time stamp', { taskId: id, reason: note });
      if (leftOut.length > 0)
        this.logger.warn('a picture is signed without the credentials of a given one', {
          taskId: id,
          reasons: leftOut,
        });
      return { ...picture, parts: [bytes], bytes: bytes.length };
    } catch (error) {
      // What is known no longer holds.
      if (error instanceof CredentialsError) this.asked = undefined;
      if (credentials.isRequired) throw error;
      this.logger.warn('a picture is stored without credentials', { taskId: id, reason: (error as Error).message });
      return picture;
    }
  }

  private async problem(): Promise<string | undefined> {
    if (!this.signer) return undefined;
    if (!this.asked || performance.now() > this.asked.until) this.asked = this.askAnew(this.signer);
    return this.asked.problem;
  }

  private askAnew(signer: PictureSigner): Asked {
    const problem = this.ask(signer).then(async (found) => {
      const end = await this.end();
      const leftMs = (end?.getTime() ?? Infinity) - Date.now();
      asked.until = performance.now() + (found === undefined ? Math.min(goodMs, leftMs) : badMs);
      if (end && found === undefined && leftMs < soonMs) this.warnOf(end);
      return found;
    });
    const asked: Asked = { until: Infinity, problem };
    return asked;
  }

  private warnOf(end: Date): void {
    if (performance.now() - this.warnedAt < dayMs) return;
    this.warnedAt = performance.now();
    this.logger.warn('the certificate that signs pictures ends soon', { end: end.toISOString() });
  }

  private async ask(signer: PictureSigner): Promise<string | undefined> {
    const problem = await signer.check().then(
      () => undefined,
      ({ message }: Error) => message,
    );
    if (problem !== this.known)
      if (problem === undefined) this.logger.log('pictures can be signed again');
      else this.logger.warn('no picture can be signed', { reason: problem });
    this.known = problem;
    return problem;
  }
}
