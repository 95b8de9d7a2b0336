import { DeviceTime } from './device-time';

describe(DeviceTime.name, () => {
  it('lets who comes begin level with the owner whose turn it is: idle time earns nothing', () => {
    const time = new DeviceTime();
    time.taskAdded('early');
    time.charge('early', 100);
    time.turnBegan('early');
    time.taskAdded('late');
    expect(time.usedMsOf('late')).toBe(100);
  });

  it('remembers of an owner who comes back soon that it is ahead', () => {
    const time = new DeviceTime();
    for (const owner of ['steady', 'brief']) time.taskAdded(owner);
    time.charge('brief', 30);
    time.taskEnded('brief');
    time.charge('steady', 10);
    time.turnBegan('steady');
    time.taskAdded('brief');
    expect(time.usedMsOf('brief')).toBe(30);
    time.taskEnded('brief');
    time.charge('steady', 90);
    time.turnBegan('steady');
    time.taskAdded('brief');
    expect(time.usedMsOf('brief')).toBe(100);
  });

  it('lets nobody wait for one newcomer after the other', () => {
    const time = new DeviceTime();
    time.taskAdded('ahead');
    time.charge('ahead', 10);
    for (let i = 0; i < 10; i++) {
      time.taskAdded(`newcomer ${i}`);
      time.charge(`newcomer ${i}`, 2);
      time.turnBegan(`newcomer ${i}`);
      time.taskEnded(`newcomer ${i}`);
    }
    time.taskAdded('last');
    expect(time.usedMsOf('last')).toBeGreaterThanOrEqual(time.usedMsOf('ahead'));
  });

  it('counts an owner as present until its last task has left', () => {
    const time = new DeviceTime();
    time.taskAdded('one');
    time.taskAdded('one');
    time.taskAdded('other');
    time.taskEnded('one');
    time.charge('other', 50);
    time.turnBegan('other');
    expect(time.usedMsOf('one')).toBe(0);
    time.taskEnded('one');
    time.taskAdded('one');
    expect(time.usedMsOf('one')).toBe(50);
  });

  it('forgets everybody once nobody is there', () => {
    const time = new DeviceTime();
    time.taskAdded('one');
    time.charge('one', 100);
    time.taskEnded('one');
    time.taskAdded('other');
    time.taskAdded('one');
    expect(time.usedMsOf('one')).toBe(time.usedMsOf('other'));
  });
});
