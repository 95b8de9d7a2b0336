import { refusalsOfPage } from '../../../../test/support/refusals-page';
import { cures } from './cures';

describe('what to do about a model that is refused', () => {
  const explained = refusalsOfPage().map(({ cure }) => cure);

  it.each(Object.values(cures))('is explained in docs/models.md: %s', (cure) => expect(explained).toContain(cure));
});
