import { errorTable, problemType } from '@app/domain';
import { exampleUrl } from './problem.dto';

const introduction = `# Errors

An error is \`application/problem+json\` (RFC 9457). Only \`/v1/images/generations\` and \`/v1/images/edits\` have OpenAI's form instead, with the same codes.

\`\`\`json
{
  "type": "${problemType(exampleUrl, 'ValidationFailed')}",
  "title": "Bad Request",
  "status": 400,
  "detail": "\\"/steps\\" must be from 1 to 50, got 500.",
  "instance": "f0d248d0-65cc-46e8-885b-28eb83a274d2",
  "code": "ValidationFailed",
  "errors": [{ "pointer": "/steps", "message": "must be from 1 to 50, got 500" }]
}
\`\`\`

\`code\` is stable: programs may rely on it. \`type\` is where this page explains it. \`detail\` is for people and may change. \`instance\` is the id of the request, which stands in the
service's log and in the header \`X-Request-Id\`. \`errors\` names each wrong field by a JSON pointer, or each wrong query parameter by its name.
A response of 429 or 503, and some of 409, says in \`Retry-After\` after how many seconds a repeat makes sense.

This page is made from the table in \`libs/domain/src/errors\` by \`npm run openapi\`.
`;

/** The page \`docs/errors.md\`: every code by its status, with its meaning. */
export function errorsPage(): string {
  const named = new Set<string>();
  const sections = Object.values(errorTable).map(({ status, title, codes }) => {
    const rows = Object.entries(codes).map(([code, meaning]) => {
      // A code of two kinds comes twice, but a page has each anchor once.
      const anchor = named.has(code) ? '' : `<a id="${code}"></a>`;
      named.add(code);
      return `| ${anchor}\`${code}\` | ${meaning} |`;
    });
    return `## ${status} ${title}\n\n| code | meaning |\n| --- | --- |\n${rows.join('\n')}\n`;
  });
  return [introduction, ...sections].join('\n');
}
