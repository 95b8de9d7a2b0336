import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/** The parts of a new key; `token` is shown once and never stored. */
export interface ApiKeySecret {
  token: string;
  prefix: string;
  secretHash: Buffer;
}

const tokenPattern = /^dr_([0-9a-z]{12})_([A-Za-z0-9_-]{43})$/;

/**
 * Makes a key `dr_<12 public characters>_<43 secret characters>` (256 random bits), or an existing key's new secret.
 */
export function newApiKeySecret(prefix = randomBytes(6).toString('hex')): ApiKeySecret {
  const secret = randomBytes(32).toString('base64url');
  return { token: `dr_${prefix}_${secret}`, prefix, secretHash: hashOf(secret) };
}

/** Splits a presented token; undefined if it does not have the form of a key. */
export function parseApiKeyToken(token: string): { prefix: string; secretHash: Buffer } | undefined {
  const match = tokenPattern.exec(token);
  return match ? { prefix: match[1], secretHash: hashOf(match[2]) } : undefined;
}

/** Compares two SHA-256 hashes in constant time. */
export function sameSecret(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Makes the secret that signs a caller's webhooks, in the Standard Webhooks form. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function hashOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

export const apiKeyScopes = ['read', 'write', 'admin'] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];
/** The scopes of a key that is made without any; `write` includes `read`. */
export const defaultScopes: readonly ApiKeyScope[] = ['write'];

/** What becomes of a picture that is flagged: it is stored as any other, stored and named in the record, or not stored. */
export const keyFilters = ['off', 'report', 'block'] as const;
export type KeyFilter = (typeof keyFilters)[number];

/** A caller: what is made with it is charged to it, and belongs to its account. The public prefix finds the row. */
@Entity('api_keys')
@Unique('api_keys_prefix_key', ['prefix'])
@Index('api_keys_seq_idx', ['seq'])
@Index('api_keys_account_idx', ['accountId'])
export class ApiKey {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  /** Order of creation, for lists. */
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;
  @Column('varchar', { length: 200 }) name: string;

  /** Keys of one account share its records: the id of the key that it began with; a trigger fills it in. */
  @Column('varchar', { length: 24 }) accountId: string;

  /** Name of its account; null while that is the key's own. */
  @Column('varchar', { length: 200, nullable: true }) account: string | null;
  @Column('varchar', { length: 16 }) prefix: string;

  /** SHA-256 of the secret part: 32 bytes. The secret is random, so no slow hash is needed. */
  @Column('bytea') secretHash: Buffer;

  /** SHA-256 of the previous secret, valid until `previousSecretExpiresAt`. */
  @Column('bytea', { nullable: true }) previousSecretHash: Buffer | null;
  @Column({ type: 'timestamptz', nullable: true }) previousSecretExpiresAt: Date | null;

  /** Signs this caller's webhooks: `whsec_` and 32 bytes in base64. */
  @Column('varchar', { length: 80 }) webhookSecret: string;

  /** Also signs webhooks until `previousWebhookSecretExpiresAt`. */
  @Column('varchar', { length: 80, nullable: true }) previousWebhookSecret: string | null;
  @Column({ type: 'timestamptz', nullable: true }) previousWebhookSecretExpiresAt: Date | null;
  @Column('text', { array: true, default: () => `'{read,write}'` }) scopes: ApiKeyScope[];

  /** No engine draws its pictures. */
  @Column('boolean', { default: false }) sandbox: boolean;

  /** Requests per minute. Here and in the next limits: null means the service's default, 0 no limit. */
  @Column('integer', { nullable: true }) rateLimitPerMinute: number | null;
  @Column('integer', { nullable: true }) maxQueued: number | null;
  @Column('integer', { nullable: true }) maxConcurrent: number | null;

  /** Megabytes of pictures and weights, including uploads in progress. */
  @Column('integer', { nullable: true }) maxStorageMb: number | null;

  /** Days after which finished records are deleted; null keeps them. */
  @Column('integer', { nullable: true }) retentionDays: number | null;

  /** Whether the uploads that only a training needed stay as long as its Fine-Tune does. */
  @Column('boolean', { default: false }) keepTrainingUploads: boolean;

  /** Whether its pictures are looked at before they are stored. */
  @Column('varchar', { length: 8, default: 'off' }) filter: KeyFilter;
  @Column({ type: 'timestamptz', default: () => 'now()' }) createdAt: Date;
  @Column({ type: 'timestamptz', nullable: true }) lastUsedAt: Date | null;
  @Column({ type: 'timestamptz', nullable: true }) revokedAt: Date | null;

  /** Whether a presented secret is this key's, or its previous one during the grace period. */
  accepts(secretHash: Buffer, now = new Date()): boolean {
    if (this.revokedAt) return false;
    if (sameSecret(this.secretHash, secretHash)) return true;
    const { previousSecretHash: previous, previousSecretExpiresAt: expiresAt } = this;
    return previous !== null && expiresAt !== null && expiresAt > now && sameSecret(previous, secretHash);
  }

  /** The secrets that sign webhooks now, the newest first. */
  signingSecrets(now = new Date()): string[] {
    const { previousWebhookSecret: previous, previousWebhookSecretExpiresAt: expiresAt } = this;
    return previous && expiresAt && expiresAt > now ? [this.webhookSecret, previous] : [this.webhookSecret];
  }

  /** Whether it may do what needs `scope`; each scope includes those before it. */
  has(scope: ApiKeyScope): boolean {
    return apiKeyScopes.slice(apiKeyScopes.indexOf(scope)).some((held) => this.scopes.includes(held));
  }

  /**
   * Gives it a new secret; the previous one is accepted until `graceEndsAt`.
   * @returns the token, which cannot be recovered later.
   */
  rotateSecret(graceEndsAt: Date): string {
    const { token, secretHash } = newApiKeySecret(this.prefix);
    this.previousSecretHash = this.secretHash;
    this.previousSecretExpiresAt = graceEndsAt;
    this.secretHash = secretHash;
    return token;
  }

  /** Gives it a new webhook secret; the previous one also signs until `graceEndsAt`. */
  rotateWebhookSecret(graceEndsAt: Date): void {
    this.previousWebhookSecret = this.webhookSecret;
    this.previousWebhookSecretExpiresAt = graceEndsAt;
    this.webhookSecret = newWebhookSecret();
  }
}
