import { preferredWait } from './wait.interceptor';

describe(preferredWait.name, () => {
  it.each([
    ['wait=10', 10],
    ['respond-async, Wait = "7" ; x=1', 7],
    ['wait=60', 60],
    ['wait=3600', 60],
    ['wait=0', undefined],
    ['wait=-1', undefined],
    ['wait=1.5', undefined],
    ['wait', 60],
    ['wait=', 60],
    ['return=minimal', undefined],
    ['', undefined],
    [undefined, undefined],
    [['return=minimal', 'wait=3'], 3],
  ])('reads %j', (header, seconds) => {
    expect(preferredWait(header)).toBe(seconds);
  });
});
