import { hashOfSignInCode, openSealedToken, UnauthorizedError } from '@app/domain';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';

/** Deletes the row it finds: of all processes only one gets a code. */
const takeStatement = `DELETE FROM sign_in_codes WHERE hash = $1 AND expires_at > now() RETURNING sealed_token`;

/** Exchanges a code for its key, once. */
@Injectable()
export class SignIn {
  constructor(private readonly transactions: Transactions) {}

  /**
   * The database compares only hashes of codes, so how long it takes says nothing about a code.
   * @throws UnauthorizedError for a code that is unknown, used or expired; the response does not say which.
   */
  async exchange(code: string): Promise<string> {
    const hash = hashOfSignInCode(code);
    const statement = { name: 'take-sign-in-code', text: takeStatement, values: [hash] };
    const [row] = hash ? await this.transactions.query<{ sealed_token: Buffer } | undefined>(statement) : [];
    if (!row)
      throw new UnauthorizedError(
        'This sign-in code is unknown, or was used, or has expired. Sign in with an API key.',
      );
    return openSealedToken(code, row.sealed_token);
  }
}
