/**
 * Time of the engine that each owner's drawings have had, counted so that owners who draw at the same time can be compared: who
 * enters starts level with the owner who has had least (start-time fair queuing; Goyal, Vin, Cheng 1996).
 */
export class EngineShares {
  private readonly ms = new Map<string, number>();

  of(owner: string): number {
    return this.ms.get(owner) ?? 0;
  }

  /** An owner who is drawing already goes on from what it has had. */
  enter(owner: string): void {
    if (!this.ms.has(owner)) this.ms.set(owner, this.ms.size === 0 ? 0 : Math.min(...this.ms.values()));
  }

  charge(owner: string, ms: number): void {
    const had = this.ms.get(owner);
    if (had !== undefined) this.ms.set(owner, had + ms);
  }

  leave(owner: string): void {
    this.ms.delete(owner);
  }
}
