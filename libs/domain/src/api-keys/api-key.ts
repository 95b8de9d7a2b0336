import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

export const apiKeyScopes = ['read', 'write', 'admin'] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];

/**
 * A caller: whoever holds the key owns what was made with it.
 * The secret itself is never stored, only its SHA-256; the public prefix finds the row.
 */
@Entity('api_keys')
@Unique('api_keys_prefix_key', ['prefix'])
export class ApiKey {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'api_keys_pkey' })
  id: string;

  @Column('varchar', { name: 'name', length: 200 })
  name: string;

  @Column('varchar', { name: 'prefix', length: 16 })
  prefix: string;

  /** SHA-256 of the secret part: 32 bytes. The secret is random, so no slow hash is needed. */
  @Column('bytea', { name: 'secret_hash' })
  secretHash: Buffer;

  /** Signs this caller's webhooks: `whsec_` and 32 bytes in base64. */
  @Column('varchar', { name: 'webhook_secret', length: 80 })
  webhookSecret: string;

  @Column('text', { name: 'scopes', array: true, default: () => `'{read,write}'` })
  scopes: ApiKeyScope[];

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt: Date | null;
}
