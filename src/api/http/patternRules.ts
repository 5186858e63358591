import { LABEL_PATTERN, LABEL_RULE } from '../../commands/orgs/label.ts'
import { PROJECT_NAME, PROJECT_NAME_RULE } from '../../commands/projects/projectName.ts'
import { CONTEXT_KEY_PATTERN, CONTEXT_KEY_RULE } from '../../events/contextKey.ts'
import { HASH_PATTERN, KEY_PATTERN, REPL_PATTERN } from '../schemas/patterns.ts'

/** The patterns of input in words, for error messages. */
export const patternRules: ReadonlyMap<string, string> = new Map([
  [PROJECT_NAME, PROJECT_NAME_RULE],
  [LABEL_PATTERN, LABEL_RULE],
  [CONTEXT_KEY_PATTERN, CONTEXT_KEY_RULE],
  [HASH_PATTERN, 'the SHA-256 of the file in hex: 64 digits'],
  [KEY_PATTERN, '32 bytes in base64: 44 characters'],
  [REPL_PATTERN, '1 to 64 letters, digits, ".", "_" and "-"'],
])
