/** Node advises options of its command line, which the author of a function cannot set. */
const ADVICE = /^Access to this API has been restricted\. Use --allow-\S+ to manage permissions\.$/

/** Returns what a function may do instead of a call that the permission model of Node refused; null for any other error. */
export const deniedText = (error: Error): string | null => {
  const { message, code, permission, resource } = error as Error & Readonly<Record<string, unknown>>
  if (code !== 'ERR_ACCESS_DENIED' || typeof permission !== 'string' || !ADVICE.test(message)) return null
  const name = typeof resource === 'string' && resource !== '' ? resource : 'this file'
  switch (permission) {
    case 'FileSystemRead':
      return `A function cannot read ${name}: it reads the files of its build, and \`svc.assets\` in package.json adds files`
    case 'FileSystemWrite':
      return `A function cannot write ${name}: store content with files.put(path, content)`
    default:
      return `A function cannot use ${permission}`
  }
}
