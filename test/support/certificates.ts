import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './tempDir.ts'

/** A private certificate authority, made with the command `openssl`. */
export interface Authority {
  /** The file with its certificate. */
  readonly file: string
  /** Issues a certificate for names such as `DNS:localhost` and `IP:127.0.0.1`. */
  issue(...names: readonly string[]): { readonly key: Buffer; readonly cert: Buffer }
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const

export const createAuthority = (): Authority => {
  const dir = tempDir()
  const at = (name: string) => join(dir, name)
  const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
  const subject = ['-subj', '/CN=svc test authority', '-days', '2'] as const
  openssl('req', '-x509', ...KEY, ...subject, '-keyout', at('ca.key'), '-out', at('ca.pem'))
  let issued = 0
  return {
    file: at('ca.pem'),
    issue: (...names) => {
      const [key, request, cert, extensions] = ['key', 'csr', 'pem', 'ext'].map((end) =>
        at(`${issued}.${end}`),
      ) as [string, string, string, string]
      issued++
      openssl('req', ...KEY, '-subj', '/CN=eventstoredb-node', '-keyout', key, '-out', request)
      writeFileSync(extensions, `subjectAltName=${names.join(',')}\n`)
      const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2'] as const
      openssl('x509', '-req', '-in', request, ...by, '-extfile', extensions, '-out', cert)
      return { key: readFileSync(key), cert: readFileSync(cert) }
    },
  }
}
