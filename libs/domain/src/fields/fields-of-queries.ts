import type { ApiQueryOptions } from '@nestjs/swagger';
import type { FieldProblems } from '../errors/field-problems';
import { Declarations } from './field-rule';

/** The query of a request, by parameter: a text, or several of a parameter that is sent more than once. */
export type Query = Readonly<Record<string, string | string[] | undefined>>;

/** A query parameter. Each may be left out: the DTO keeps its initial value. */
interface Parameter<T = unknown> {
  description?: string;
  schema: Extract<ApiQueryOptions, { schema: unknown }>['schema'];
  /**
   * @param refuse is told what is wrong with the text; the message has no subject, because the parameter precedes it
   * @param query what else was sent, unchecked
   */
  read: (sent: string, refuse: (message: string) => undefined, query: Query) => T | undefined;
}

/** The decorator of a property that can have a `T`: the compiler does not check that by itself. */
type DecoratorOf<T> = <Dto extends object, Name extends keyof Dto>(
  prototype: Dto,
  name: Name & ([T] extends [Dto[Name]] ? unknown : never),
) => void;

const parametersOfDtos = new Declarations<Parameter>();

/** A property of a query's DTO: the parameter of the same name. */
export function QueryParameter<T>(parameter: Parameter<T>): DecoratorOf<T> {
  return (prototype, name) => parametersOfDtos.add(prototype, name, parameter);
}

/** One of some words. */
export function WordParameter<Word extends string>({
  values,
  description,
  default: value,
}: {
  values: readonly Word[];
  description?: string;
  /** For the document only. */
  default?: NoInfer<Word>;
}) {
  return QueryParameter<Word>({
    description,
    schema: { type: 'string', enum: [...values], ...(value !== undefined && { default: value }) },
    read: (sent, refuse) => values.find((word) => word === sent) ?? refuse(`must be one of ${values.join(', ')}`),
  });
}

/** The parameters of a DTO by name, in the order of the document. */
export const parametersOf = (dto: new () => object): ReadonlyMap<string, Parameter> => parametersOfDtos.of(dto);

/** Reads its parameters of a query as a DTO; if there are problems, the result is meaningless. */
export function readParameters<T extends object>(dto: new () => T, query: Query, problems: FieldProblems): T {
  const read: Record<string, unknown> = {};
  for (const [name, parameter] of parametersOf(dto)) {
    const sent = query[name];
    const refuse = (message: string): undefined => void problems.addParameter(name, message);
    if (Array.isArray(sent)) refuse('must be sent once');
    else if (sent !== undefined) read[name] = parameter.read(sent, refuse, query);
  }
  return Object.assign(new dto(), read);
}
