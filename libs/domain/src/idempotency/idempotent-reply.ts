import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The first reply to a request that carried an `Idempotency-Key`, kept to be replayed. */
@Entity('idempotent_replies')
@Index('idempotent_replies_created_idx', ['createdAt'])
export class IdempotentReply {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'idempotent_replies_pkey' })
  ownerId: string;

  @PrimaryColumn('varchar', { name: 'key', length: 255, primaryKeyConstraintName: 'idempotent_replies_pkey' })
  key: string;

  /** SHA-256 of method, path and body, in hex: another request under the same key is refused. */
  @Column('varchar', { name: 'fingerprint', length: 64 })
  fingerprint: string;

  @Column('integer', { name: 'status' })
  status: number;

  /** The body as it was sent. */
  @Column('text', { name: 'body' })
  body: string;

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
