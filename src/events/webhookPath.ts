/** Parameters of one path: more would be a mistake. */
const MAX_PARAMETERS = 8
const PARAMETER = /^:[A-Za-z_][A-Za-z0-9_]{0,63}$/

const isParameter = (segment: string): boolean => segment.startsWith(':')

/** Returns why the parameters of a webhook path are not valid; undefined if they are. */
export const mistakeInParameters = (path: string): string | undefined => {
  const parameters = path.split('/').filter(isParameter)
  if (path.split('/').some((segment) => segment.startsWith('*')))
    return 'to have no wildcards; use a parameter such as ":id" for a segment'
  if (parameters.some((segment) => !PARAMETER.test(segment)))
    return 'to have parameters such as ":id", with letters, digits and "_"'
  if (new Set(parameters).size < parameters.length) return 'to name each parameter once'
  return parameters.length > MAX_PARAMETERS ? `to have at most ${MAX_PARAMETERS} parameters` : undefined
}

/** Whether segments of the path are parameters, such as `:id` in `/orders/:id`. */
export const hasParameters = (path: string): boolean => path.includes('/:')

/** The path without the names of its parameters: two paths with the same shape match the same requests. */
export const shapeOf = (path: string): string =>
  path
    .split('/')
    .map((segment) => (isParameter(segment) ? ':' : segment))
    .join('/')

/** Returns the parameters of a requested path, which is decoded; null if it does not match. */
export const parametersIn = (path: string, requested: string): Readonly<Record<string, string>> | null => {
  const [wanted, given] = [path.split('/'), requested.split('/')]
  if (wanted.length !== given.length) return null
  const parameters: [string, string][] = []
  for (const [i, segment] of wanted.entries()) {
    const value = given[i] ?? ''
    if (isParameter(segment) && value !== '') parameters.push([segment.slice(1), value])
    else if (segment !== value) return null
  }
  return Object.fromEntries(parameters)
}

/** The path with its parameters replaced, as a part of a URL. */
export const withParameters = (path: string, parameters: Readonly<Record<string, string>>): string =>
  path
    .split('/')
    .map((segment) =>
      isParameter(segment) ? encodeURIComponent(parameters[segment.slice(1)] ?? segment) : segment,
    )
    .join('/')
