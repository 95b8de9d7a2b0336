import { namedToken, pictureUrl } from './picture-url';

const token = 'abcdefghijklmnopqrstuv_-';

it('finds the token in every URL that it made', () => {
  for (const base of ['http://localhost:3000', 'https://pictures.example/darkroom']) {
    const url = pictureUrl(base, { token, storageKey: 'uploads/x.png' });
    expect(url).toBe(`${base}/images/${token}.png`);
    expect(namedToken(base, `${url}?again#there`)).toEqual({ token, isHere: true });
  }
});

it.each([
  ['http://localhost:3000/images/../metrics', { token: '', isHere: true }],
  ['http://localhost:3000/images/short.png', { token: '', isHere: true }],
  ['http://LOCALHOST:3000/metrics', { token: '', isHere: true }],
  [`http://localhost:3001/images/${token}.png`, { token, isHere: false }],
  [`https://cdn.example/darkroom/images/${token}.webp`, { token, isHere: false }],
  [`https://cdn.example/images/${token}.webp/more`, undefined],
  ['http://localhost:3001/metrics', undefined],
  ['no url', undefined],
])('finds %s to have %j', (url, found) => {
  expect(namedToken('http://localhost:3000', url)).toEqual(found);
});
