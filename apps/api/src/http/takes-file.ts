import { SetMetadata } from '@nestjs/common';

const fileKey = 'takesFile';

/** For a route whose body is a file, which the route reads as a stream: no JSON is expected there. */
export const TakesFile = () => SetMetadata(fileKey, true);

export function takesFile(route: object): boolean {
  return Reflect.getMetadata(fileKey, route) === true;
}
