import * as domain from '@app/domain';
import { seedOf } from './seed';

describe(seedOf.name, () => {
  it.each([0, 7, 4_294_967_294, 4_294_967_295])('is that of the domain for the pictures from %i on', (seed) => {
    for (let index = 0; index < 8; index++) expect(seedOf(seed, index)).toBe(domain.seedOf(seed, index));
  });
});
