type Dto = new () => object;

/** What a decorator says of the properties of DTOs. */
export class Declarations<T> {
  /** By the prototype of the class that declares them. */
  private readonly own = new WeakMap<object, Map<string, T>>();
  /** Those of each DTO that has been read. */
  private readonly known = new WeakMap<Dto, ReadonlyMap<string, T>>();

  add(prototype: object, name: PropertyKey, declaration: T): void {
    const declarations = this.own.get(prototype) ?? new Map<string, T>();
    this.own.set(prototype, declarations.set(String(name), declaration));
  }

  /**
   * Those of a DTO by name, in order of declaration: first those of the class that it extends.
   * @throws Error if there are none
   */
  of(dto: Dto): ReadonlyMap<string, T> {
    const known = this.known.get(dto);
    if (known) return known;
    const all: (readonly [string, T])[] = [];
    for (
      let prototype = dto.prototype as object | null;
      prototype;
      prototype = Object.getPrototypeOf(prototype) as object | null
    )
      all.unshift(...(this.own.get(prototype) ?? []));
    if (all.length === 0)
      throw new Error(`${dto.name} is no DTO: none of its properties has a decorator that says so.`);
    const declarations = new Map(all);
    this.known.set(dto, declarations);
    return declarations;
  }
}
