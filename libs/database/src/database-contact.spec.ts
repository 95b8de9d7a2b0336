import { DatabaseContact } from './database-contact';

describe(DatabaseContact.name, () => {
  let now: number;
  let contact: DatabaseContact;

  beforeEach(() => {
    now = 500_000;
    contact = new DatabaseContact(() => now);
  });

  /** The database answers every two seconds for so long. */
  function answers(seconds: number): void {
    for (const end = now + seconds * 1000; now < end; now += 2_000) contact.noteAnswer(1_000_000 + now);
  }

  it('has not lasted before the first answer', () => {
    expect(contact.heldMs).toBe(0);
  });

  it('lasts from the first answer, and tells the database’s time between two of them', () => {
    answers(20);
    now += 1_500;
    expect(contact.heldMs).toBe(21_500);
    expect(contact.databaseMs).toBe(1_000_000 + now);
  });

  it('lasts over a short break', () => {
    answers(20);
    now += 4_000;
    answers(10);
    expect(contact.heldMs).toBe(34_000);
  });

  it('begins again after a long one', () => {
    answers(20);
    now += 8_000;
    expect(contact.heldMs).toBe(0);
    answers(10);
    expect(contact.heldMs).toBe(10_000);
  });

  it('begins again when the database’s time is far ahead of what it should be, as after this machine slept', () => {
    answers(20);
    contact.noteAnswer(1_000_000 + now + 5_000);
    now += 2_000;
    expect(contact.heldMs).toBe(22_000);
    contact.noteAnswer(1_000_000 + now + 5_000 + 7_000);
    expect(contact.heldMs).toBe(0);
    now += 2_000;
    expect(contact.heldMs).toBe(2_000);
  });
});
