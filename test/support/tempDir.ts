import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

process.on('exit', () => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true })
})

/** A new empty directory, removed when the test process exits. */
export const tempDir = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-test-'))
  made.push(dir)
  return dir
}
