import { Turns } from './turns';

describe(Turns.name, () => {
  it('lets who comes begin level with the owner whose turn it is: idle time earns nothing', () => {
    const turns = new Turns();
    turns.come('early');
    turns.charge('early', 100);
    turns.begin('early');
    turns.come('late');
    expect(turns.of('late')).toBe(100);
  });

  it('remembers of an owner who comes back soon that it is ahead', () => {
    const turns = new Turns();
    for (const owner of ['steady', 'brief']) turns.come(owner);
    turns.charge('brief', 30);
    turns.leave('brief');
    turns.charge('steady', 10);
    turns.begin('steady');
    turns.come('brief');
    expect(turns.of('brief')).toBe(30);
    turns.leave('brief');
    turns.charge('steady', 90);
    turns.begin('steady');
    turns.come('brief');
    expect(turns.of('brief')).toBe(100);
  });

  it('lets nobody wait for one newcomer after the other', () => {
    const turns = new Turns();
    turns.come('ahead');
    turns.charge('ahead', 10);
    for (let i = 0; i < 10; i++) {
      turns.come(`newcomer ${i}`);
      turns.charge(`newcomer ${i}`, 2);
      turns.begin(`newcomer ${i}`);
      turns.leave(`newcomer ${i}`);
    }
    turns.come('last');
    expect(turns.of('last')).toBeGreaterThanOrEqual(turns.of('ahead'));
  });

  it('counts an owner as present until its last task has left', () => {
    const turns = new Turns();
    turns.come('one');
    turns.come('one');
    turns.come('other');
    turns.leave('one');
    turns.charge('other', 50);
    turns.begin('other');
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
