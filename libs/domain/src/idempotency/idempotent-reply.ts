import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The stored first response to a request with an `Idempotency-Key`, to be replayed. */
@Entity('idempotent_replies')
@Index('idempotent_replies_created_idx', ['createdAt'])
@Index('idempotent_replies_records_idx', ['recordIds'], { type: 'gin' })
export class IdempotentReply {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'idempotent_replies_pkey' })
  ownerId: string;

  @PrimaryColumn('varchar', { name: 'key', length: 255, primaryKeyConstraintName: 'idempotent_replies_pkey' })
  key: string;

  /** SHA-256 of method, path and body as a JSON value, in hex: a different request with the same key is rejected. */
  @Column('varchar', { name: 'fingerprint', length: 64 })
  fingerprint: string;

  @Column('integer', { name: 'status' })
  status: number;

  /** The body as it was sent. */
  @Column('text', { name: 'body' })
  body: string;

  /** Records that the body or the path names; the reply is deleted with the first of them. */
  @Column('varchar', { name: 'record_ids', length: 24, array: true, default: () => `'{}'` })
  recordIds: string[];

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
