import { QueryBatcher } from '@app/database';
import { hashOfSignInCode, openSealedToken, UnauthorizedError } from '@app/domain';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';

interface CodeRow {
  hash: Buffer;
  sealed_token: Buffer;
}

/** Deletes what it finds, so that of all processes only one finds a code. */
const takeStatement = `DELETE FROM sign_in_codes WHERE hash = ANY($1) AND expires_at > now() RETURNING hash, sealed_token`;

/** Exchanges a code for the key that it stands for, once. */
@Injectable()
export class SignIn {
  /** One statement for all that is asked at the same time: anybody may ask. */
  private readonly taken: QueryBatcher<Buffer, Buffer | undefined>;

  constructor(transactions: Transactions) {
    this.taken = new QueryBatcher(async (hashes) => {
      const rows = await transactions.query<CodeRow>({
        name: 'take-sign-in-codes',
        text: takeStatement,
        values: [hashes],
      });
      const found = new Map(rows.map((row) => [row.hash.toString('hex'), row.sealed_token]));
      return hashes.map((hash) => {
        const name = hash.toString('hex');
        const sealed = found.get(name);
        // Of two requests with the same code in one batch the first gets the key.
        found.delete(name);
        return sealed;
      });
    });
  }

  /**
   * The database compares only hashes of codes, so how long it takes says nothing about a code.
   * @throws UnauthorizedError for a code that is unknown, used or expired; the response does not say which.
   */
  async exchange(code: string): Promise<string> {
    const hash = hashOfSignInCode(code);
    const sealed = hash && (await this.taken.get(hash));
    if (!sealed)
      throw new UnauthorizedError(
        'This sign-in code is unknown, or was used, or has expired. Sign in with an API key.',
      );
    return openSealedToken(code, sealed);
  }
}
