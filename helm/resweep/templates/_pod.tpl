{{- define "resweep.pod" -}}
metadata:
  labels:
    {{- include "resweep.labels" (dict "root" . "extra" .Values.podLabels) | nindent 4 }}
  annotations:
    checksum/settings: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "resweep.serviceAccountName" . }}
  automountServiceAccountToken: false
  {{- /* Else a Service called resweep puts RESWEEP_PORT and others beside the agent's own RESWEEP_… variables. */}}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: agent
      image: {{ include "resweep.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [agent, --settings, /etc/resweep/resweep.toml{{ if include "resweep.external" . }}, --standby{{ end }}]
      env:
        - name: RESWEEP_TOKEN
          valueFrom:
            secretKeyRef:
              name: {{ include "resweep.tokenSecret" . }}
              key: {{ include "resweep.tokenKey" . }}
        - name: RESWEEP_LISTEN
          value: "0.0.0.0:9464"
        - name: RESWEEP_HOME
          value: /var/lib/resweep
        {{- if include "resweep.external" . }}
        - name: RESWEEP_STORE
          valueFrom:
            secretKeyRef:
              name: {{ include "resweep.databaseSecret" . }}
              key: {{ .Values.database.existingSecretKey }}
        {{- end }}
        - name: HOME
          value: /tmp
        - name: TMPDIR
          value: /tmp
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 9464
          protocol: TCP
      startupProbe:
        httpGet:
          path: /healthz/live
          port: http
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet:
          path: /healthz/live
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /healthz/ready
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        runAsNonRoot: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: settings
          mountPath: /etc/resweep
          readOnly: true
        - name: data
          mountPath: /var/lib/resweep
        - name: scratch
          mountPath: /tmp
  volumes:
    - name: settings
      configMap:
        name: {{ include "resweep.fullname" . }}
    - name: data
      {{- if .Values.persistence.enabled }}
      persistentVolumeClaim:
        claimName: {{ default (printf "%s-data" (include "resweep.fullname" .)) .Values.persistence.existingClaim }}
      {{- else }}
      emptyDir: {}
      {{- end }}
    - name: scratch
      emptyDir:
        sizeLimit: {{ .Values.scratchSize }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end -}}

{{- define "resweep.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}
