/** Counts a worker's tasks per owner, from their claim until their pictures are stored. */
export class OwnerPlaces {
  private readonly taken = new Map<string, number>();

  /** @param max tasks of one owner at a time; the other places are for whoever comes meanwhile. */
  constructor(private readonly max: number) {}

  /** Owners who have as many tasks here as one owner may. */
  get full(): string[] {
    return [...this.taken].filter(([, count]) => count >= this.max).map(([owner]) => owner);
  }

  /** @returns what gives the place back */
  take(owner: string): () => void {
    this.taken.set(owner, (this.taken.get(owner) ?? 0) + 1);
    return () => {
      const left = this.taken.get(owner)! - 1;
      if (left > 0) this.taken.set(owner, left);
      else this.taken.delete(owner);
    };
  }
}
