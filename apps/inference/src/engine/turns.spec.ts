import { Turns } from './turns';

describe(Turns.name, () => {
  it('lets who comes begin level with who has had least: idle time earns nothing', () => {
    const turns = new Turns();
    turns.come('early');
    turns.charge('early', 100);
    turns.come('late');
    expect(turns.of('late')).toBe(100);
    turns.charge('early', 50);
    turns.come('later');
    expect(turns.of('later')).toBe(100);
  });

  it('remembers of an owner who comes back soon that it is ahead', () => {
    const turns = new Turns();
    for (const owner of ['steady', 'brief']) turns.come(owner);
    turns.charge('brief', 30);
    turns.leave('brief');
    turns.charge('steady', 10);
    turns.come('brief');
    expect(turns.of('brief')).toBe(30);
    turns.leave('brief');
    turns.charge('steady', 90);
    turns.come('brief');
    expect(turns.of('brief')).toBe(100);
  });

  it('lets nobody wait for one newcomer after the other', () => {
    const turns = new Turns();
    turns.come('ahead');
    turns.come('first');
    turns.charge('ahead', 10);
    for (let i = 0; i < 10; i++) {
      turns.come(`newcomer ${i}`);
      turns.leave(i === 0 ? 'first' : `newcomer ${i - 1}`);
      turns.charge(`newcomer ${i}`, 2);
    }
    turns.come('last');
    expect(turns.of('last')).toBe(turns.of('ahead'));
  });

  it('counts an owner as present until its last task has left', () => {
    const turns = new Turns();
    turns.come('one');
    turns.come('one');
    turns.come('other');
    turns.leave('one');
    turns.charge('other', 50);
    expect(turns.of('one')).toBe(0);
    turns.leave('one');
    turns.come('one');
    expect(turns.of('one')).toBe(50);
  });

  it('forgets everybody once nobody is there', () => {
    const turns = new Turns();
    turns.come('one');
    turns.charge('one', 100);
    turns.leave('one');
    turns.come('other');
    turns.come('one');
    expect(turns.of('one')).toBe(turns.of('other'));
  });
});
