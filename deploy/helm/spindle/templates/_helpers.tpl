{{/* Names, labels, and the parts that the pods of all roles share. */}}

{{/* Image reference: by digest if one is given, because a tag may be moved to another image. */}}
{{- define "spindle.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "spindle.labels" -}}
app.kubernetes.io/name: spindle
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spindle.metadata" -}}
labels:
  {{- include "spindle.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Environment of a container, by the role in .role. */}}
{{- define "spindle.environment" -}}
- name: ROLES
  value: {{ .role }}
- name: HOST
  value: 0.0.0.0
- name: METRICS_HOST
  value: 0.0.0.0
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range list "REDIS_URL" "DATABASE_URL" "OPERATOR_API_KEY" "WEBHOOK_SECRETS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef: { name: {{ $.root.Values.existingSecret }}, key: {{ . }} }
{{- end }}
{{- range list "SEEDS_KEY" "DATABASE_DIRECT_URL" "METRICS_TOKEN" "SMTP_URL" "LOG_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef: { name: {{ $.root.Values.existingSecret }}, key: {{ . }}, optional: true }
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "spindle.container" -}}
image: {{ include "spindle.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- if .Values.tlsSecret }}
  - name: tls
    mountPath: /etc/spindle/tls
    readOnly: true
  {{- end }}
{{- end }}

{{- define "spindle.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
volumes:
  - name: tmp
    emptyDir: {}
  {{- if .Values.tlsSecret }}
  - name: tls
    secret: { secretName: {{ .Values.tlsSecret }}, defaultMode: 0440 }
  {{- end }}
{{- end }}

{{/* Placement of a role's pods. By default they are spread evenly over nodes and zones. */}}
{{- define "spindle.placement" -}}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $labels := include "spindle.labels" $.root | fromYaml }}
  {{- $_ := set $labels "app.kubernetes.io/component" $.component }}
  - {{ merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $labels)) | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A stop takes at most SHUTDOWN_GRACE_S plus 5 s. Before it begins, the load balancer gets 5 s
   to learn that the pod is stopping. */}}
{{- define "spindle.stop" -}}
terminationGracePeriodSeconds: {{ add 25 (.Values.settings.SHUTDOWN_GRACE_S | default "5" | int) }}
{{- end }}
{{- define "spindle.preStop" -}}
lifecycle:
  preStop:
    exec: { command: [sleep, '5'] }
{{- end }}

{{/* Restarts a process that hangs. A process whose stores are unavailable is not restarted, because
   a restart would not help. */}}
{{- define "spindle.liveness" -}}
startupProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}
