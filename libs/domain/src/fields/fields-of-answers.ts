import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';

// How the fields of answers are documented: each decorator takes what is said of the field, and more of its schema.

type Schema = Record<string, unknown>;
type FieldOfAnswer = (description?: string, more?: Schema) => PropertyDecorator;

/** In the document the bounds of a value stand before its description. */
function described(schema: Schema, description = '', { format, minimum, ...more }: Schema = {}): PropertyDecorator {
  return ApiProperty({
    ...schema,
    ...(format !== undefined && { format }),
    ...(minimum !== undefined && { minimum }),
    ...(description !== '' && { description }),
    ...more,
  } as ApiPropertyOptions);
}

const of =
  (schema: Schema): FieldOfAnswer =>
  (description, more) =>
    described(schema, description, more);

const orNull = { nullable: true };
const id = { type: String, minLength: 24, maxLength: 24 };
const text = { type: String };
const time = { type: String, format: 'date-time' };
const integer = { type: 'integer' };
/** Any JSON value but null. @param ofObject more of the schema of an object */
export const anyValue = (ofObject: Schema = {}) => ({
  anyOf: [
    { type: 'object', additionalProperties: true, ...ofObject },
    { type: 'array', items: {} },
    { type: 'string' },
    { type: 'number' },
    { type: 'boolean' },
  ],
});

export const Id = of(id);
export const Text = of(text);
export const TextOrNull = of({ ...text, ...orNull });
export const Texts = of({ ...text, isArray: true });
/** Sentences by the names of what they are about. */
export const TextByName = of({ type: 'object', additionalProperties: { type: 'string' } });
export const Time = of(time);
export const TimeOrNull = of({ ...time, ...orNull });
export const Integer = of(integer);
export const Integers = of({ ...integer, isArray: true });
export const IntegerOrNull = of({ ...integer, ...orNull });
export const Decimal = of({ type: Number });
export const DecimalOrNull = of({ type: Number, ...orNull });
export const YesNo = of({ type: Boolean });
/** The metadata of a caller. */
export const OwnValue = of({ ...anyValue(), ...orNull });

/** One of some words. */
export const Word = (values: readonly string[], enumName: string, description?: string) =>
  described({ enum: [...values], enumName }, description);
export const WordOrNull = (values: readonly string[], enumName: string, description?: string) =>
  described({ enum: [...values], enumName, ...orNull }, description);

type Dto = new () => object;

/** An object, or several, with fields of their own. */
export const Part = (type: Dto, description?: string) => described({ type }, description);
export const PartOrNull = (type: Dto, description?: string) => described({ type, ...orNull }, description);
export const Parts = (type: Dto, description?: string) => described({ type, isArray: true }, description);
