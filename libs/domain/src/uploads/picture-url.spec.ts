import { pictureToken, pictureUrl } from './picture-url';

const token = 'abcdefghijklmnopqrstuv_-';

it('finds the token in every URL that it made', () => {
  for (const base of ['http://localhost:3000', 'https://pictures.example/darkroom']) {
    const url = pictureUrl(base, { token, storageKey: 'uploads/x.png' });
    expect([url, pictureToken(base, `${url}?again#there`)]).toEqual([`${base}/images/${token}.png`, token]);
  }
});

it.each([
  ['http://localhost:3000/images/../metrics', ''],
  ['http://localhost:3000/images/short.png', ''],
  ['http://LOCALHOST:3000/metrics', ''],
  ['http://localhost:3001/images/abcdefghijklmnopqrstuv_-.png', undefined],
  ['no url', undefined],
])('finds %s to have %j', (url, found) => {
  expect(pictureToken('http://localhost:3000', url)).toBe(found);
});
