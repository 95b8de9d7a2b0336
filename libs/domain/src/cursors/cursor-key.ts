import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * The one row with the key that encrypts positions in lists, so that a cursor tells nobody how many records there are.
 */
@Entity('cursor_keys')
export class CursorKey {
  @PrimaryColumn('integer', { name: 'id', primaryKeyConstraintName: 'cursor_keys_pkey' })
  id: number;

  /** 32 random bytes. */
  @Column('bytea', { name: 'secret' })
  secret: Buffer;
}
