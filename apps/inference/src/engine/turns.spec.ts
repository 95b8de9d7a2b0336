import { Turns } from './turns';

describe(Turns.name, () => {
  it('lets who comes begin level with the owner whose turn it is: idle time earns nothing', () => {
    const turns = new Turns();
    turns.taskAdded('early');
    turns.charge('early', 100);
    turns.turnBegan('early');
    turns.taskAdded('late');
    expect(turns.usedMsOf('late')).toBe(100);
  });

  it('remembers of an owner who comes back soon that it is ahead', () => {
    const turns = new Turns();
    for (const owner of ['steady', 'brief']) turns.taskAdded(owner);
    turns.charge('brief', 30);
    turns.taskEnded('brief');
    turns.charge('steady', 10);
    turns.turnBegan('steady');
    turns.taskAdded('brief');
    expect(turns.usedMsOf('brief')).toBe(30);
    turns.taskEnded('brief');
    turns.charge('steady', 90);
    turns.turnBegan('steady');
    turns.taskAdded('brief');
    expect(turns.usedMsOf('brief')).toBe(100);
  });

  it('lets nobody wait for one newcomer after the other', () => {
    const turns = new Turns();
    turns.taskAdded('ahead');
    turns.charge('ahead', 10);
    for (let i = 0; i < 10; i++) {
      turns.taskAdded(`newcomer ${i}`);
      turns.charge(`newcomer ${i}`, 2);
      turns.turnBegan(`newcomer ${i}`);
      turns.taskEnded(`newcomer ${i}`);
    }
    turns.taskAdded('last');
    expect(turns.usedMsOf('last')).toBeGreaterThanOrEqual(turns.usedMsOf('ahead'));
  });

  it('counts an owner as present until its last task has left', () => {
    const turns = new Turns();
    turns.taskAdded('one');
    turns.taskAdded('one');
    turns.taskAdded('other');
    turns.taskEnded('one');
    turns.charge('other', 50);
    turns.turnBegan('other');
    expect(turns.usedMsOf('one')).toBe(0);
    turns.taskEnded('one');
    turns.taskAdded('one');
    expect(turns.usedMsOf('one')).toBe(50);
  });

  it('forgets everybody once nobody is there', () => {
    const turns = new Turns();
    turns.taskAdded('one');
    turns.charge('one', 100);
    turns.taskEnded('one');
    turns.taskAdded('other');
    turns.taskAdded('one');
    expect(turns.usedMsOf('one')).toBe(turns.usedMsOf('other'));
  });
});
