import { OwnerPlaces } from './owner-places';

describe(OwnerPlaces.name, () => {
  it('lists who has as many places as one owner may, until one is given back', () => {
    const places = new OwnerPlaces(2);
    const giveBack = places.take('greedy');
    places.take('modest');
    expect(places.full).toEqual([]);
    places.take('greedy');
    expect(places.full).toEqual(['greedy']);
    giveBack();
    expect(places.full).toEqual([]);
  });
});
