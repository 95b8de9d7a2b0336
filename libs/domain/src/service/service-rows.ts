import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The one row with the key that encrypts positions in lists: a cursor must not tell how many records there are. */
@Entity('cursor_keys')
export class CursorKey {
  @PrimaryColumn('integer') id: number;

  /** 32 random bytes. */
  @Column('bytea') secret: Buffer;
}

/** The one row that readiness checks write, to test that the database is writable. */
@Entity('readiness_probes')
export class ReadinessProbe {
  @PrimaryColumn('integer') id: number;
  @Column({ type: 'timestamptz', precision: 3 }) probedAt: Date;
}

/**
 * The one row that says which builds may run on these tables: those that know this migration. A migration after which
 * an older build would fail, or write wrong rows, writes its own name here, or that of the one it presupposes.
 */
@Entity('oldest_builds')
export class OldestBuild {
  @PrimaryColumn('integer') id: number;
  @Column('varchar') knows: string;
}

/** The stored first response to a request with an `Idempotency-Key`, to be replayed. */
@Entity('idempotent_replies')
@Index('idempotent_replies_created_idx', ['createdAt'])
@Index('idempotent_replies_unanswered_idx', ['createdAt'], { where: `"status" = 0 AND "record_ids" <> '{}'` })
@Index('idempotent_replies_records_idx', ['recordIds'], { type: 'gin' })
export class IdempotentReply {
  @PrimaryColumn('varchar', { length: 24 }) ownerId: string;
  @PrimaryColumn('varchar', { length: 255 }) key: string;

  /** SHA-256 of method, path and body as a JSON value, in hex: a different request with the same key is rejected. */
  @Column('varchar', { length: 64 }) fingerprint: string;
  @Column('integer') status: number;

  /** The body as it was sent. */
  @Column('text') body: string;

  /** Records that the body or the path names; the reply is deleted with the first of them. */
  @Column('varchar', { length: 24, array: true, default: () => `'{}'` }) recordIds: string[];
  @Column({ type: 'timestamptz', default: () => 'now()' }) createdAt: Date;
}
